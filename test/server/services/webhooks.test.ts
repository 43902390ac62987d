import test from 'ava'
import { webhooksContract } from '../../contracts/webhooks.ts'
import { servicesOnStore } from '../../helpers/servers/services.ts'

webhooksContract(test, 'on the store,', servicesOnStore)
