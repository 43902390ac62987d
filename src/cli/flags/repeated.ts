/** An option that may be repeated: each takes one value. */
export const repeated = { multiple: true, multipleNonGreedy: true } as const

/** The same; one word may hold several values, too. */
export const listed = { ...repeated, delimiter: ',' } as const
