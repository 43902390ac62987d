import test from 'ava'
import { startInsides } from '../../helpers/servers/services.ts'

test('A15 a retry reuses undeclared params that an older server accepted, but validates new secrets', async (t) => {
  const { services, context } = await startInsides(t)
  const { id: hostId } = await services.hosts.create({ hostname: 'web1', ip: '10.0.0.1' })
  const content = '# rsm: param VERSION required, param KEY required secret, param OTHER required\ntrue\n'
  const script = await services.scripts.create({ name: 'deploy', type: 'BASH', content })
  const started = await services.tasks.create({
    script: { content },
    target: { hostIds: [hostId] },
    params: { VERSOIN: '1' },
    secretParams: { KEY: 'hush' },
    queueSeconds: 0,
  })
  const { taskId } = started as { taskId: string }
  await context.engine.finished(taskId)
  await context.store.transact(async (tx) => {
    const task = await tx.get('tasks', taskId)
    if (task) tx.put('tasks', { ...task, scriptId: script.id, scriptVersion: 1, scriptName: 'deploy' })
  })
  const { fields } = await t.throwsAsync<any>(services.tasks.retry(taskId, { secretParams: { KEY: '' } }))
  t.deepEqual(fields, [{ field: 'secretParams.KEY', message: 'is required by deploy' }])
  const retried = await services.tasks.retry(taskId, { secretParams: { KEY: 'hush' } })
  const again = await services.tasks.get((retried as { taskId: string }).taskId)
  t.deepEqual([again.scriptId, again.params], [script.id, { VERSOIN: '1' }])
})

test('A15 a script stored by an older server runs although its patterns would be refused now', async (t) => {
  const { services, context } = await startInsides(t)
  const { id: hostId } = await services.hosts.create({ hostname: 'web1', ip: '10.0.0.1' })
  const { id: scriptId } = await services.scripts.create({ name: 'deploy', type: 'BASH', content: 'true' })
  for (const pattern of ['(', 'a{1000}', '(?i)\\pL']) {
    await context.store.transact(async (tx) => {
      const script = await tx.get('scripts', scriptId)
      const content = `# rsm: param VERSION required pattern="${pattern}", param KEEP pattern=a\n`
      if (script) tx.put('scripts', { ...script, content })
    })
    const run = (params: Record<string, string>) =>
      services.tasks.executeScript(scriptId, { hostIds: [hostId], params, queueSeconds: 0 })
    await t.notThrowsAsync(run({ VERSION: '1', KEEP: 'b' }), pattern)
    await t.throwsAsync(run({}), { message: /VERSION/ }, 'required params are still required')
  }
})
