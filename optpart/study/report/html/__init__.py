"""Reports as one HTML file that needs no network: schedules, graph, progress and bounds."""
