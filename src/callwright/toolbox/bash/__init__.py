"""The `bash` tool and its background jobs."""
