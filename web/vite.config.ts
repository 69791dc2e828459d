import { defineConfig } from "vite";

// Relative addresses: the page runs from any folder of any static host.
export default defineConfig({
  base: "./",
  build: { outDir: "../out/web", emptyOutDir: true, target: "es2022", assetsInlineLimit: 0, chunkSizeWarningLimit: 1000 },
  worker: { format: "es" },
});
