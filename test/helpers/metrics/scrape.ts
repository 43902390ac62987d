import type { TestServer } from '../servers/server.ts'

/** The text of a scrape, and its series by name and labels as written. */
export interface Scrape {
  text: string
  series: ReadonlySet<string>
  /** The value of a series by its text, such as `rsm_hosts{status="ONLINE"}`; 0 if it is missing. */
  of: (series: string) => number
}

export function parseScrape(text: string): Scrape {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  const values = new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(' ')
      return [line.slice(0, at), Number(line.slice(at + 1))]
    }),
  )
  return { text, series: new Set(values.keys()), of: (series) => values.get(series) ?? 0 }
}

export async function scrape(server: TestServer): Promise<Scrape> {
  return parseScrape((await server.data('GET', '/metrics')) as string)
}
