"""How many samples any explorer needs: characteristic times, and the max-min problem behind them."""
