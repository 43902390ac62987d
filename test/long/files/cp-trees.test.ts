import { createHash, randomBytes } from 'node:crypto'
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import test from 'ava'
import { cleanEnv, startRsm, temporaryDirectory } from '../../fixtures/rsm.ts'
import { copyFleet } from '../../helpers/agents/copy-fleet.ts'

test('cp -r gives a new directory the mode of the copied one; an existing one keeps mode and owner', async (t) => {
  const { rsm, theirs, ours, file } = await copyFleet(t, 'web1')
  file('private/key', 'k', 0o600)
  const ourPrivate = join(ours, 'private')
  chmodSync(ourPrivate, 0o700)
  const modeOf = (path: string) => statSync(path).mode & 0o777
  for (const [source, target] of [
    [ourPrivate, `${theirs}/one`],
    [ourPrivate, `${theirs}/`],
    [`${ourPrivate}/`, `${theirs}/two`],
    [`${ourPrivate}/`, `${theirs}/three/`],
  ] as const) {
    const ran = await rsm(['cp', '-r', source, `web1:${target}`])
    t.is(ran.exit, 0, ran.stderr)
  }
  for (const name of ['one', 'private', 'two', 'three']) t.is(modeOf(join(theirs, name)), 0o700, name)
  chmodSync(join(theirs, 'one'), 0o755)
  t.is((await rsm(['cp', '-r', ourPrivate, `web1:${theirs}/one`])).exit, 0)
  t.is(modeOf(join(theirs, 'one')), 0o755)
  t.is((await rsm(['cp', '-r', `web1:${theirs}/private`, `${ours}/back`])).exit, 0)
  t.is(modeOf(join(ours, 'back/web1/private')), 0o700)
  if (process.getuid?.() !== 0) return
  const owned = await rsm(['cp', '-r', `${ourPrivate}/`, `web1:${theirs}/`, '--owner', '1234:1234'])
  t.is(owned.exit, 0, owned.stderr)
  t.is(statSync(join(theirs, 'key')).uid, 1234)
  t.is(statSync(theirs).uid, 0)
})

test('cp -r of a directory that changes during the upload is refused before any host gets it', async (t) => {
  const { server, theirs, ours, file } = await copyFleet(t, 'web1')
  for (const name of ['a', 'b']) file(`site/${name}`, randomBytes(24 * 1024 * 1024))
  file('site/z', 'z')
  const env = cleanEnv(temporaryDirectory(t), { RSM_URL: server.url, RSM_TOKEN: server.token })
  const count = () => readdirSync(join(server.dataDir, 'files')).length
  for (const change of [() => file('site/c', 'c'), () => rmSync(join(ours, 'site/z'))]) {
    const before = count()
    const { done } = startRsm(['cp', '-r', join(ours, 'site'), `web1:${theirs}/copied`], env)
    // Its names have been read by then, and most of its bytes have not.
    while (count() === before) await turn()
    change()
    const { exit, stderr } = await done
    t.is(exit, 2, stderr)
    t.regex(stderr, /site(\/z)? changed while it was read; run it again/)
  }
  t.deepEqual(readdirSync(theirs), [])
  t.is((await server.data('GET', '/api/tasks')).totalElements, 0)
})

test('tasks files lists the files that a task fetched and downloads them again, even if some hosts had none', async (t) => {
  const { server, rsm, theirs, ours } = await copyFleet(t, 'web1', 'web2')
  writeFileSync(join(theirs, 'web1.log'), 'log of web1\n')
  t.is((await rsm(['cp', `web[1-2]:${theirs}/%h.log`, join(ours, 'first')])).exit, 1)
  const listed = await rsm(['tasks', 'files', 'latest'])
  t.is(listed.exit, 0, listed.stderr)
  const sum = createHash('sha256').update('log of web1\n').digest('hex')
  t.regex(
    listed.stdout,
    new RegExp(`^web1 +12 B +${theirs}/web1\\.log +${sum}\nweb2 +- +${theirs}/web2\\.log +-$`, 'm'),
  )
  const logs = join(ours, 'logs')
  const brought = await rsm(['tasks', 'files', 'latest', '--outdir', logs])
  t.is(brought.exit, 0, brought.stderr)
  t.is(brought.stdout, `web1: ${join(logs, 'web1', 'web1.log')} (12 B)\n`)
  t.is(brought.stderr, 'rsm: no files from web2\n')
  t.is(readFileSync(join(logs, 'web1', 'web1.log'), 'utf8'), 'log of web1\n')
  const [task] = (await server.data('GET', '/api/tasks?size=1')).content
  const second = await server.data('GET', `/api/tasks/${task.taskId}/files?page=1&size=1`)
  t.like(second, {
    totalElements: 2,
    content: [{ hostname: 'web2', kind: 'FILE', size: null, sha256: null }],
  })

  mkdirSync(join(theirs, 'etc'))
  writeFileSync(join(theirs, 'etc', 'a.conf'), 'a')
  t.is((await rsm(['cp', '-r', `web1:${theirs}/etc`, join(ours, 'tree')])).exit, 0)
  t.is((await rsm(['tasks', 'files', 'latest', '--outdir', logs])).exit, 0)
  t.is(readFileSync(join(logs, 'web1', 'etc', 'a.conf'), 'utf8'), 'a')

  t.is((await rsm(['cp', `web1:${theirs}/none`, ours])).exit, 1)
  const none = await rsm(['tasks', 'files', 'latest', '--outdir', logs])
  t.is(none.exit, 5)
  t.regex(none.stderr, /no files from the hosts of task/)
  t.is((await rsm(['exec', '-w', 'web1', 'true'])).exit, 0)
  const other = await rsm(['tasks', 'files', 'latest'])
  t.is(other.exit, 5)
  t.regex(other.stderr, /fetches no files: its type is BASH/)
})

test('tasks show prints source, target, mode and owner of a copy, and the hosts that it changed', async (t) => {
  const { rsm, theirs, file } = await copyFleet(t, 'web1', 'web2')
  writeFileSync(join(theirs, 'web2.conf'), 'port=1\n', { mode: 0o640 })
  const source = file('app\u200b.conf', 'port=1\n')
  const to = `${theirs}/%h.conf`
  const how = ['--mode', '0640', '--backup', '--limit-rate', '10M']
  t.is((await rsm(['cp', source, `web[1-2]:${to}`, ...how])).exit, 0)
  const sum = createHash('sha256').update('port=1\n').digest('hex')
  const shown = (await rsm(['tasks', 'show', 'latest'])).stdout
  t.regex(shown, /^type +COPY$/m)
  t.regex(shown, new RegExp(`^file +app\\.conf, 7 B, sha256 ${sum}$`, 'm'))
  t.regex(shown, new RegExp(`^to +${to}$`, 'm'))
  t.regex(shown, /^mode +0640$/m)
  t.regex(shown, /^owner +of the replaced file, else of the writer$/m)
  t.regex(shown, /^backup +the replaced file is kept/m)
  t.regex(shown, /^limit rate +10\.5 MB\/s$/m)
  t.regex(shown, /^HOST +STATUS +EXIT +CHANGED /m)
  t.regex(shown, /^web1 +SUCCESS +0 +yes /m)
  t.regex(shown, /^web2 +SUCCESS +0 +no /m)

  t.is((await rsm(['cp', `web2:${theirs}/web2.conf`, `${source}.of.web2`])).exit, 0)
  t.regex((await rsm(['tasks', 'show', 'latest'])).stdout, new RegExp(`^from +${theirs}/web2\\.conf$`, 'm'))
  t.is((await rsm(['exec', '-w', 'web1', '--stdin', source, 'cat'])).exit, 0)
  const ran = (await rsm(['tasks', 'show', 'latest'])).stdout
  t.regex(ran, new RegExp(`^stdin +app\\.conf, 7 B, sha256 ${sum}$`, 'm'))
  t.notRegex(ran, /CHANGED/)
})
