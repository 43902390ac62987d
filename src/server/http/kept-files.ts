/**
 * The files of these names and media types, each read when it is first asked for, and kept; undefined for any other name. A
 * read that failed is tried again.
 */
export function keptFiles<F>(
  mediaTypes: Readonly<Record<string, string>>,
  read: (name: string, mediaType: string) => Promise<F>,
): (name: string) => Promise<F | undefined> {
  const kept = new Map<string, Promise<F>>()
  return async (name) => {
    const mediaType = Object.hasOwn(mediaTypes, name) ? mediaTypes[name] : undefined
    if (mediaType === undefined) return undefined
    const known = kept.get(name)
    if (known) return known
    const reading = read(name, mediaType)
    kept.set(name, reading)
    reading.catch(() => kept.delete(name))
    return reading
  }
}
