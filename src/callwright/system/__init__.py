"""The machine underneath: paths, files, processes and what confines them."""
