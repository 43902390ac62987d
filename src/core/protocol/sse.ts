/** One server-sent event as it goes over the wire (WHATWG HTML §9.2); `data` becomes JSON, which holds no line break. */
export function formatEvent(event: string, data: unknown, id?: string | number): string {
  return `event: ${event}\n${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`
}
