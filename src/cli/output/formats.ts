import type { FormatOptions, OutputFormat } from './format.ts'

interface Format {
  /** Its file is written whole: a reader sees the former one or all of the new one, never a part. */
  readonly whole: boolean
  open(options: FormatOptions): Promise<OutputFormat>
}

/** Every format of `-o` (contract §9). A new one is a file beside this and a line here. */
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
