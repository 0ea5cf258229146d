"""What people see of libraries, runs and episodes: records for every output, and the HTML page."""
