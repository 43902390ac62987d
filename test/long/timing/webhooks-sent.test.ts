import test from 'ava'
import { webhooksSentContract } from '../../contracts/webhooks-sent.ts'
import { startTestServer } from '../../helpers/servers/server.ts'

webhooksSentContract(test, 'on the store,', startTestServer)
