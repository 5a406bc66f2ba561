"""Who sees what: tags compiled into one plan."""
