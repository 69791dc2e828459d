/** The dotted path of these steps: a name with a dot in it is quoted. */
export const join = (...steps: string[]): string => steps.map((step) => (step.includes(".") ? `"${step}"` : step)).join(".");
