"""`python -m envscaler` is the `envscaler` command."""

from envscaler.cli import main

if __name__ == "__main__":
    main()
