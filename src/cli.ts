import type { Config } from '@oclif/core/interfaces'
import { refuseForeignBytes } from './cli/command/argv.ts'
import { type Asked, type Manifest, readCommandLine } from './cli/command/command-line.ts'
import { failureOf, reportFailure, unwritable } from './cli/command/failure.ts'
import { ownPackage, ownText } from './disk/own-files.ts'

interface CommandClass {
  id: string
  new (argv: string[], config: Config): { _run(): Promise<unknown> }
}

/** Exit code of a program whose reader went away: 128 + SIGPIPE. */
const brokenPipe = 141

/** Loads a command by its path without its ending, as `commands/hosts/list`. */
type LoadCommand = (path: string) => Promise<{ default: CommandClass }>

/** Beside this file, which is bundled or not, and so are they. */
const beside: LoadCommand = (path) =>
  import(new URL(`${path}.js`, import.meta.url).href) as ReturnType<LoadCommand>

/**
 * What a command reads of oclif's configuration. Loading the real one costs a third of a start; help, which needs it,
 * loads it.
 */
function lightConfig(): Config {
  const config = {
    bin: 'rsm',
    name: 'rsm',
    root: '/',
    get version() {
      return ownPackage().version
    },
    topicSeparator: ' ',
    userAgent: 'rsm',
    runHook: async () => ({ successes: [], failures: [] }),
    scopedEnvVarKeys: () => [],
  }
  return config as unknown as Config
}

async function carryOut(asked: Asked, manifest: Manifest, load: LoadCommand): Promise<void> {
  if (asked.kind === 'help') {
    const { showHelp } = await import('./cli/command/help.ts')
    await showHelp(asked.words, manifest)
    return
  }
  const { default: Command } = await load(`commands/${asked.id.replaceAll(':', '/')}`)
  Command.id = asked.id
  await new Command([...asked.argv], lightConfig())._run()
}

/** Carries out a command line; `load` finds commands where they do not lie beside this file. */
export async function main(argv: string[], load: LoadCommand = beside): Promise<void> {
  let asked: Asked | undefined
  const isJson = () => (asked?.kind === 'run' ? asked.json : argv.includes('--json'))
  // First: oclif has a listener of its own, which throws.
  process.stdout.prependListener('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(brokenPipe)
    // What is half written is no success, and the rest can't be written either.
    process.exit(reportFailure(failureOf(unwritable(error)), isJson()))
  })
  // Nobody reads the errors any more: that ends no command.
  process.stderr.on('error', () => {})
  try {
    const manifest = JSON.parse(ownText('oclif.manifest.json')) as Manifest
    refuseForeignBytes(argv)
    asked = readCommandLine(manifest, argv)
    await carryOut(asked, manifest, load)
  } catch (error) {
    const run = asked?.kind === 'run' ? asked : undefined
    const failure = failureOf(error, run?.id, Object.keys(run?.command.flags ?? {}))
    process.exitCode = reportFailure(failure, isJson())
  }
}
