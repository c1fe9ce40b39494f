"""The sandbox around commands: bubblewrap, else Landlock."""
