/** The folder with Python for browsers. */
declare const __PYODIDE__: string;
