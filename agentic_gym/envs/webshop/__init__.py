"""WebShop: the simulated web shop of Yao et al. (2022), in pure Python."""
