"""Child processes that end with their parent process, however it ends."""
