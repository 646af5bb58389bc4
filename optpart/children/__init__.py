"""Child processes: they end with the process that started them, however it ends."""
