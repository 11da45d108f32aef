// The server serves the result below /_explorer/; nothing is inlined, since the pages' policy allows no inline script or style.
export default {
  base: "/_explorer/",
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  build: { target: "es2022", assetsInlineLimit: 0, modulePreload: { polyfill: false }, reportCompressedSize: false, emptyOutDir: true },
};
