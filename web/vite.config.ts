import { readFileSync } from "node:fs";
import { defineConfig, type Plugin } from "vite";
import pyodide from "pyodide/package.json" with { type: "json" };

const PYODIDE = `pyodide-${pyodide.version}`;

/** Python for browsers: fetched only where a policy is written in it. Some servers do not know the type of .mjs. */
const python: Plugin = {
  name: "python",
  generateBundle() {
    for (const file of ["pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json"]) {
      const bytes = readFileSync(new URL(`node_modules/pyodide/${file}`, import.meta.url));
      const source = file.endsWith(".mjs") ? bytes.toString().replaceAll("pyodide.asm.mjs", "pyodide.asm.js") : bytes;
      this.emitFile({ type: "asset", fileName: `${PYODIDE}/${file.replace(/mjs$/, "js")}`, source });
    }
  },
};

// Relative addresses: the page runs from any folder of any static host.
export default defineConfig({
  base: "./",
  define: { __PYODIDE__: JSON.stringify(PYODIDE) },
  plugins: [python],
  build: { outDir: "../out/web", emptyOutDir: true, target: "es2022", assetsInlineLimit: 0, chunkSizeWarningLimit: 1000 },
  worker: { format: "es" },
});
