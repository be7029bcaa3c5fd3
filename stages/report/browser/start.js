// First the list, which is small; rows and texts are unpacked when the page has been painted.
addEventListener("hashchange", openBatch);
for (const element of document.querySelectorAll("td, th, li, summary, summary strong")) {
  for (const node of [...element.childNodes]) if (node instanceof Text) node.replaceWith(...breakable(node.data));
}
startList()
  .then(startMap)
  .then(openBatch)
  .then(() => unpack("data-rows"))
  .catch(error => {
    told.textContent = `This browser cannot show the batches (${error.message}); a newer one can.`;
  });
