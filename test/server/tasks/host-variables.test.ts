import test from 'ava'
import { realAgent } from '../../helpers/agents/real-agent.ts'
import { ScriptedAgent } from '../../helpers/agents/scripted-agent.ts'
import { finished, startTask } from '../../helpers/clients/tasks.ts'
import { startTestServer } from '../../helpers/servers/server.ts'

test('A16 P16 a script sees the current name, tags and clusters of its host', async (t) => {
  const server = await startTestServer(t)
  const agent = await realAgent(t, server, { hostname: 'web1' })
  const { hostId } = agent
  await server.data('PATCH', `/api/hosts/${hostId}`, { tags: { role: 'web', 'a-b': 'c', tier: "it's 1" } })
  await server.data('POST', '/api/clusters', { name: 'web servers', hostIds: [hostId] })
  await server.data('POST', '/api/clusters', { name: 'by-tag', selector: '@role:web' })
  await server.data('POST', '/api/clusters', { name: 'others', selector: '@role:db' })
  const content = 'env | grep ^RSM_ | grep -v -e ^RSM_EXECUTION -e ^RSM_TASK_ID | sort; echo "$OWN"'
  const taskId = await startTask(server, [hostId], { script: { content }, params: { OWN: 'param' } })
  t.is((await finished(server, taskId)).status, 'SUCCESS')
  const { entries } = await server.data('GET', `/api/tasks/${taskId}/logs`)
  t.is(
    entries.map(({ data }: { data: string }) => data).join(''),
    `RSM_CLUSTERS=web servers,by-tag
RSM_HOST=web1
RSM_HOST_ID=${hostId}
RSM_TAGS={"role":"web","a-b":"c","tier":"it's 1"}
RSM_TAG_ROLE=web
RSM_TAG_TIER=it's 1
param
`,
  )
  // The variables are not parameters of the task.
  t.deepEqual((await server.data('GET', `/api/tasks/${taskId}`)).params, { OWN: 'param' })
})

test('A16 P16 a base-protocol agent gets the parameters alone; parameters named RSM_ are refused', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const base = await ScriptedAgent.link(server, identity, { storeId: null })
  const taskId = await startTask(server, [identity.hostId], { params: { OWN: 'x' } })
  t.deepEqual((await base.execution(taskId)).params, { OWN: 'x' })
  for (const name of ['RSM_HOST', 'RSM_TAG_ROLE', 'RSM_ANY']) {
    const body = {
      script: { content: 'true' },
      target: { hostIds: [identity.hostId] },
      params: { [name]: 'x' },
      async: true,
    }
    const refused = await server.api('POST', '/api/tasks', body)
    t.is(refused.status, 400)
    t.is(refused.body.errors?.[0]?.field, `params.${name}`)
  }
})

test('A16 P16 an execution that is sent again includes the variables', async (t) => {
  const server = await startTestServer(t)
  const identity = await server.enroll('web1')
  const first = await ScriptedAgent.link(server, identity)
  const taskId = await startTask(server, [identity.hostId], {})
  t.is((await first.execution(taskId)).params['RSM_HOST'], 'web1')
  await first.cut()
  const second = await ScriptedAgent.link(server, identity)
  t.is((await second.execution(taskId)).params['RSM_HOST'], 'web1')
})
