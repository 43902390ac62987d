/** Items in groups that weigh `most` together; a heavier one is alone. */
export async function* grouped<T>(
  items: AsyncIterable<T>,
  most: number,
  weigh: (item: T) => number = () => 1,
): AsyncGenerator<T[]> {
  let group: T[] = []
  let weight = 0
  for await (const item of items) {
    const more = weigh(item)
    if (group.length > 0 && weight + more > most) {
      yield group
      group = []
      weight = 0
    }
    group.push(item)
    weight += more
  }
  if (group.length > 0) yield group
}
