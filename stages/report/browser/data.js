// What the page carries: JSON, compressed and in base64, in a script element of the page itself.
const unpacked = new Map();

/** Return a promise of the JSON in the script element `id`, which is unpacked once. */
function unpack(id) {
  if (!unpacked.has(id)) unpacked.set(id, read(id));
  return unpacked.get(id);
}

async function read(id) {
  const text = atob(document.getElementById(id).textContent);
  const bytes = new Uint8Array(text.length);
  for (let place = 0; place < text.length; place++) bytes[place] = text.charCodeAt(place);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}
