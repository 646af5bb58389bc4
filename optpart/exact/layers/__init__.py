"""Wide layers between cut vertices, on devices of proportional speed: exact subset sums."""
