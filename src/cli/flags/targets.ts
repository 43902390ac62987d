import { boolean, string } from '@oclif/core/flags'
import { RsmError } from '../../core/errors.ts'
import type { ClusterCreate, Target } from '../../core/protocol/http/clusters.ts'
import type { Services } from '../../core/services.ts'
import { isEmptyTarget, selectHosts } from '../names/names.ts'
import { type FlagsOf, given, repeated } from './checks.ts'

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

/** Members of a static cluster (`--hosts`, matched now) or a dynamic one (`--selector`, matched at each use). */
export const memberFlags = {
  hosts: string({
    char: 'w',
    helpValue: 'SELECTOR',
    exclusive: ['selector'],
    description: 'members: the hosts that this selector matches now',
  }),
  selector: string({
    helpValue: 'SELECTOR',
    exclusive: ['hosts'],
    description: 'members: always the hosts that this selector matches',
  }),
}

/** Reads the target flags (contract §9); `-w -` takes names from `readStdin`. */
export async function readTarget(flags: TargetFlags, readStdin: () => Promise<string>): Promise<Target> {
  refuseEmpty(flags)
  const hosts: string[] = []
  for (const selector of flags.hosts ?? []) {
    if (selector !== '-') {
      hosts.push(selector)
      continue
    }
    // Handwritten host lists may have # comments.
    const text = (await readStdin()).replace(/(^|\s)#.*$/gm, '$1')
    const names = text.split(/\s+/).filter((name) => name !== '')
    if (names.length === 0) throw new RsmError('usage', 'there are no host names on stdin')
    hosts.push(...names)
  }
  const { all, cluster: clusters, tag: tags, exclude } = flags
  const isNamed = hosts.length > 0 || clusters !== undefined
  // A missing target is an error, never every host.
  if (all && isNamed)
    throw new RsmError('usage', '--all already means every host', { hint: 'leave out --all, or -w and -g' })
  if (!all && !isNamed && tags === undefined)
    throw new RsmError('usage', 'no target hosts', {
      hint: "name them with -w 'web[1-3]', -g CLUSTER, -t KEY=VALUE or --all",
    })
  const faulty = tags?.find((tag) => tag.indexOf('=') < 1)
  if (faulty !== undefined)
    throw new RsmError('usage', `--tag takes KEY=VALUE, not ${faulty}`, { hint: 'for example: -t role=web' })
  return {
    ...given({ clusters, tags, exclude }),
    ...(hosts.length > 0 && { hosts }),
    ...(all && { all }),
  }
}

/** Catches unset shell variables, as in `-w "$HOSTS"`. */
function refuseEmpty({ hosts = [], cluster = [], tag = [], exclude = [] }: TargetFlags): void {
  for (const [option, values] of Object.entries({ '-w': hosts, '-g': cluster, '-t': tag, '-x': exclude }))
    if (values.some((value) => value.trim() === ''))
      throw new RsmError('usage', `${option} is empty`, { hint: 'is a variable not set?' })
}

export async function readMembers(
  services: Pick<Services, 'hosts'>,
  flags: FlagsOf<typeof memberFlags>,
): Promise<Pick<ClusterCreate, 'hostIds' | 'selector'>> {
  if (flags.selector !== undefined) return { selector: flags.selector }
  if (flags.hosts === undefined) return {}
  const hosts = await selectHosts(services, { selector: flags.hosts }).catch((error: unknown) => {
    if (isEmptyTarget(error)) return []
    throw error
  })
  return { hostIds: hosts.map((host) => host.id) }
}
