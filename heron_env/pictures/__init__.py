"""Pictures, drawn from arrays and names: no environment stands behind them."""
