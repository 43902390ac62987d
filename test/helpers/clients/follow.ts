/** One server-sent event, as a test sees it. */
export interface SeenEvent {
  event: string
  id: string | null
  data: any
}

/** Reads an event stream until it ends or until `until` returns true. */
export async function followEvents(
  url: string,
  headers: Record<string, string>,
  until: (event: SeenEvent) => boolean = () => false,
): Promise<SeenEvent[]> {
  const response = await fetch(url, { headers })
  if (response.status !== 200 || !response.body) throw new Error(`status ${response.status}`)
  const events: SeenEvent[] = []
  let text = ''
  const decoder = new TextDecoder()
  for await (const chunk of response.body) {
    text += decoder.decode(chunk as Uint8Array, { stream: true })
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const block = text.slice(0, end)
      text = text.slice(end + 2)
      if (block.startsWith(':')) continue
      const field = (name: string) =>
        block
          .split('\n')
          .find((line) => line.startsWith(`${name}: `))
          ?.slice(name.length + 2) ?? null
      const seen = { event: field('event') ?? '', id: field('id'), data: JSON.parse(field('data') ?? 'null') }
      events.push(seen)
      // Leaving the loop cancels the body, and with it the connection.
      if (until(seen)) return events
    }
  }
  return events
}

/** The output of one host in the order of arrival. */
export function textOf(events: readonly SeenEvent[], hostname?: string): string {
  return events
    .filter(({ event, data }) => event === 'output' && (hostname === undefined || data.hostname === hostname))
    .map(({ data }) => data.data as string)
    .join('')
}
