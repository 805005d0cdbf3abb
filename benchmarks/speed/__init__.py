"""Speed measurements, one program a file, each with ``main(argv)``."""
