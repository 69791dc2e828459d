"""What an administrator types and reads, a module for each tool."""
