import { string } from '@oclif/core/flags'
import type { ClusterCreate } from '../../core/protocol/http/clusters.ts'
import type { Services } from '../../core/services.ts'
import { selectHosts } from '../names/targets.ts'
import type { FlagsOf } from './given.ts'

/** A cluster has the hosts that were named when it was changed, or those of a selector that is read each time. */
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

export async function readMembers(
  services: Pick<Services, 'hosts'>,
  flags: FlagsOf<typeof memberFlags>,
): Promise<Pick<ClusterCreate, 'hostIds' | 'selector'>> {
  if (flags.selector !== undefined) return { selector: flags.selector }
  if (flags.hosts === undefined) return {}
  return { hostIds: (await selectHosts(services, flags.hosts)).map((host) => host.id) }
}
