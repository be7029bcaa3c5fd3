"""The browser of batches and the map of clusters: what the page carries of them, and the scripts that show it."""
