"""From a model to a plan that a runtime takes, in one call."""
