"""The batch browser and the map of clusters: what the page carries of batches, and the scripts that show it."""
