import { boolean, string } from '@oclif/core/flags'
import { RsmError } from '../../core/errors.ts'
import { checkTargets, type TargetOptions } from '../names/targets.ts'
import type { FlagsOf } from './given.ts'
import { repeated } from './repeated.ts'

const helpGroup = 'TARGETS'
const several = { helpGroup, ...repeated } as const

export const targetFlags = {
  hosts: string({
    ...several,
    char: 'w',
    aliases: ['host'],
    helpValue: 'SELECTOR',
    description: "hosts, like 'web[1-3],db1'; - reads names from stdin",
  }),
  cluster: string({ ...several, char: 'g', helpValue: 'NAME', description: 'all hosts of a cluster' }),
  all: boolean({ helpGroup, char: 'a', description: 'every host' }),
  tag: string({ ...several, char: 't', helpValue: 'KEY=VALUE', description: 'only hosts with this tag' }),
  exclude: string({ ...several, char: 'x', helpValue: 'SELECTOR', description: 'hosts to leave out' }),
}

export type TargetFlags = FlagsOf<typeof targetFlags>

/** Names the option in which a variable was not set, as in `-w "$HOSTS"`. */
function refuseEmpty({ hosts = [], cluster = [], tag = [], exclude = [] }: TargetFlags): void {
  for (const [option, values] of Object.entries({ '-w': hosts, '-g': cluster, '-t': tag, '-x': exclude }))
    if (values.some((value) => value.trim() === ''))
      throw new RsmError('usage', `${option} is empty`, { hint: 'is a variable not set?' })
}

/** The targets that the options say; `-w -` takes the names that `readStdin` gives. */
export async function readTargets(
  flags: TargetFlags,
  readStdin: () => Promise<string>,
): Promise<TargetOptions> {
  refuseEmpty(flags)
  const hosts: string[] = []
  for (const selector of flags.hosts ?? []) {
    if (selector !== '-') {
      hosts.push(selector)
      continue
    }
    // A list of hosts that a person keeps: a # begins a comment.
    const text = (await readStdin()).replace(/(^|\s)#.*$/gm, '$1')
    const names = text.split(/\s+/).filter((name) => name !== '')
    if (names.length === 0) throw new RsmError('usage', 'there are no host names on stdin')
    hosts.push(...names)
  }
  const targets = {
    hosts,
    clusters: flags.cluster ?? [],
    all: flags.all,
    tags: flags.tag ?? [],
    exclude: flags.exclude ?? [],
  }
  checkTargets(targets)
  return targets
}
