import test from 'ava'
import { startInsides } from '../../helpers/servers/services.ts'

const hostKey = `SHA256:${'k'.repeat(43)}`
const access = {
  sshPort: 22,
  username: 'ops',
  authType: 'PASSWORD',
  password: 'secret',
  privateKey: 'KEY',
  hostKey,
} as const

/** Credentials and pinned key that remain after a patch of a host that had both. */
for (const [what, patch, left] of [
  ['another address', { ip: '192.0.2.2' }, { authType: 'NONE', kept: [], hostKey: null }],
  ['another port', { sshPort: 2222 }, { authType: 'NONE', kept: [], hostKey: null }],
  ['another user', { username: 'root' }, { authType: 'NONE', kept: [], hostKey: null }],
  [
    'another user and a password',
    { username: 'root', password: 'new' },
    { authType: 'PASSWORD', kept: ['password'], hostKey },
  ],
  [
    'another address and a key',
    { ip: '192.0.2.2', privateKey: 'NEW' },
    { authType: 'PASSWORD', kept: ['privateKey'], hostKey },
  ],
  [
    'another address and no password',
    { ip: '192.0.2.2', password: null },
    { authType: 'NONE', kept: [], hostKey: null },
  ],
  [
    'the same address, port and user',
    { ip: '192.0.2.1', sshPort: 22, username: 'ops' },
    { authType: 'PASSWORD', kept: ['password', 'privateKey'], hostKey },
  ],
  [
    'a new password alone',
    { password: 'new' },
    { authType: 'PASSWORD', kept: ['password', 'privateKey'], hostKey },
  ],
  [
    'a cleared key',
    { hostKey: null },
    { authType: 'PASSWORD', kept: ['password', 'privateKey'], hostKey: null },
  ],
] as const)
  test(`a patch with ${what} keeps only credentials and keys that still apply`, async (t) => {
    const { services, context } = await startInsides(t)
    const { id } = await services.hosts.create({ hostname: 'web1', ip: '192.0.2.1', ...access })
    const host = await services.hosts.update(id, patch)
    const record = await context.store.get('hosts', id)
    const kept = (['password', 'privateKey'] as const).filter((field) => record?.[field] !== null)
    t.deepEqual({ authType: host.authType, kept, hostKey: host.hostKey }, { ...left, kept: [...left.kept] })
  })

test('a host that never had credentials keeps its authType when it moves', async (t) => {
  const { services } = await startInsides(t)
  const { id } = await services.hosts.create({ hostname: 'web1', ip: '192.0.2.1', authType: 'PASSWORD' })
  t.is((await services.hosts.update(id, { ip: '192.0.2.2' })).authType, 'PASSWORD')
})
