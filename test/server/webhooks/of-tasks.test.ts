import test from 'ava'
import { webhooksOfTasksContract } from '../../contracts/webhooks-sent.ts'
import { startTestServer } from '../../helpers/servers/server.ts'

webhooksOfTasksContract(test, 'on the store,', startTestServer)
