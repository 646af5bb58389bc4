"""What every other room uses: errors, files, folders, clocks, registries, terminals, processes.

Nothing here knows anything of scheduling or imports another room.
"""
