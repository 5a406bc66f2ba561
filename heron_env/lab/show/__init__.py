"""What people read: figures, descriptions of environments, and reports, one HTML file with its figures beside it."""
