/** What options of other tools are called here, by what is typed: for any command, or for one that runs something. */
const options: Readonly<Record<string, string>> = {
  '--check': '--plan',
  '--fanout': '-f, --concurrency',
  '--forks': '-f, --concurrency',
  '--list-hosts': '--plan',
  '--become': '-l, --run-as',
  '--become-user': '-l, --run-as',
  '--user': '-l, --run-as',
  '--serial': '--batch-size',
  '--env': '-p, --param',
  '-e': '-p, --param',
  '--extra-vars': '-p, --param',
  '--lines': '--tail',
  '-n': '--tail',
}

/** The option of this command that another tool calls so; undefined where it has none. */
export function optionMeant(typed: string, known: readonly string[]): string | undefined {
  const word = typed.split('=', 1)[0] ?? ''
  const meant = Object.hasOwn(options, word) ? options[word] : undefined
  const name = meant?.replace(/^.*--/, '')
  return name !== undefined && known.includes(name) ? meant : undefined
}
