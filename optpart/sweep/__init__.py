"""Many runs: what one is, where it is done, and where what it found is kept."""
