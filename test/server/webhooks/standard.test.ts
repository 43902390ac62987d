import test from 'ava'
import { Webhook } from 'standardwebhooks'
import { newSecret, signed } from '../../../src/server/webhooks/sender.ts'
import { startTestServer } from '../../helpers/servers/server.ts'
import { startReceiver } from '../../helpers/servers/webhook-receiver.ts'

const body = JSON.stringify({
  type: 'task.failed',
  timestamp: '2026-03-02T09:00:00.000Z',
  data: { text: 'ä' },
})

test('a signature verifies with the library of the specification; another body, time or secret does not', (t) => {
  const secret = newSecret()
  const headers = signed(secret, 'msg_1', Date.now(), body)
  const webhook = new Webhook(secret)
  t.deepEqual(webhook.verify(body, headers), JSON.parse(body))
  t.throws(() => webhook.verify(`${body} `, headers))
  t.throws(() => webhook.verify(body, { ...headers, 'webhook-id': 'msg_2' }))
  t.throws(() => webhook.verify(body, signed(secret, 'msg_1', Date.now() - 600_000, body)))
  t.throws(() => new Webhook(newSecret()).verify(body, headers))
})

test('a real delivery verifies with the library, by the secret that was shown once', async (t) => {
  const server = await startTestServer(t, { webhooks: { insecure: true, allow: ['127.0.0.1'] } })
  const receiver = await startReceiver(t)
  const input = { name: 'call', url: receiver.url, events: ['agent.revoked'] }
  const { secret } = await server.data('POST', '/api/webhooks', input)
  const { hostId } = await server.enroll('web1')
  await server.data('DELETE', `/api/hosts/${hostId}/agent`)
  const [got] = await receiver.first(1)
  const verified = new Webhook(secret).verify(got?.text ?? '', got?.headers as Record<string, string>)
  t.like(verified, { type: 'agent.revoked', data: { hostId, hostname: 'web1' } })
})
