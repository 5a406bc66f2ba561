"""Who sees what, how clearly: tags, or an observability matrix with noise, compiled into one plan."""
