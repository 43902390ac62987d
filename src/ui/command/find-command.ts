const deepest = 3

/** The longest run of leading words that names a command; `rest` follows them. */
export function findCommand<C>(commands: Readonly<Record<string, C>>, argv: readonly string[]) {
  for (let count = Math.min(argv.length, deepest); count > 0; count--) {
    const words = argv.slice(0, count)
    const id = words.join(':')
    const command = Object.hasOwn(commands, id) ? commands[id] : undefined
    if (command !== undefined) return { id, words, command, rest: argv.slice(count) }
  }
  return undefined
}
