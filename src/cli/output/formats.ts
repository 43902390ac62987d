import type { FormatOptions, OutputFormat } from './format.ts'

interface Format {
  /** Whether its file is replaced atomically: readers see the old one or all of the new one. */
  readonly whole: boolean
  open(options: FormatOptions): Promise<OutputFormat>
}

/** All formats of `-o` (contract §9). To add one, add a file here and an entry below. */
export const formats = {
  live: {
    whole: false,
    open: async (options) => new (await import('./live.ts')).LiveOutput(options),
  },
  grouped: {
    whole: true,
    open: async (options) => new (await import('./grouped.ts')).GroupedOutput(options),
  },
  ndjson: {
    whole: false,
    open: async (options) => new (await import('./ndjson.ts')).NdjsonOutput(options),
  },
  junit: {
    whole: true,
    open: async (options) => new (await import('./junit.ts')).JunitOutput(options),
  },
  github: {
    whole: true,
    open: async (options) => new (await import('./github.ts')).GithubOutput(options),
  },
} as const satisfies Record<string, Format>

export type FormatName = keyof typeof formats

export const formatNames = Object.keys(formats) as FormatName[]
