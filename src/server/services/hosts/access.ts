import type { HostPatch } from '../../../core/protocol/http/hosts.ts'
import type { HostRecord } from '../../storage/records/host.ts'
import { patched } from '../merge-patch.ts'

/** The SSH port of a host that names none. */
export const defaultPort = 22

type Secret = 'password' | 'privateKey'
type Access = Pick<HostRecord, 'ip' | 'sshPort' | 'authType' | 'username' | Secret | 'hostKey'>
/** Seals a secret of this host for its record. */
type Seal = (field: Secret, value: string) => string

/**
 * How the server logs in to a host after a patch. Secrets that are stored are for whom they were given: another place or
 * user gets none of them, and where no new ones come, its key is another's too (contract §10).
 */
export function patchedAccess(current: HostRecord, patch: HostPatch, seal: Seal): Access {
  const place = {
    ip: patch.ip ?? current.ip,
    sshPort: patched(patch.sshPort, current.sshPort, defaultPort),
    username: patched(patch.username, current.username, null),
  }
  const isElsewhere =
    place.ip !== current.ip || place.sshPort !== current.sshPort || place.username !== current.username
  const hasNew = typeof patch.password === 'string' || typeof patch.privateKey === 'string'
  const isLeft = isElsewhere && !hasNew
  const secret = (field: Secret) => {
    const given = patch[field]
    if (given === undefined) return isElsewhere ? null : current[field]
    return given === null ? null : seal(field, given)
  }
  const hadSecret = current.password !== null || current.privateKey !== null
  return {
    ...place,
    authType: patched(patch.authType, isLeft && hadSecret ? 'NONE' : current.authType, 'NONE'),
    password: secret('password'),
    privateKey: secret('privateKey'),
    hostKey: patched(patch.hostKey, isLeft ? null : (current.hostKey ?? null), null),
  }
}
