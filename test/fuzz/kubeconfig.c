/*
 * A kubeconfig from anywhere: whatever the bytes are, the answer is a configuration or an error with a sentence, and
 * what a plugin would be told about the configuration can be written.
 */
#include "kube/config.h"
#include "kube/exec_private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_(kube_config_done) struct kube_config config = {0};
        _cleanup_(free_ptr) char *info = NULL;
        struct err err = ERR_INIT;

        if (kube_config_parse(str_n((const char *)data, size), "/dir", NULL, &config, &err) < 0) {
                if (err.code == E_OK || !err.text[0] || config.server)
                        abort();
                return 0;
        }
        if (!config.server || !config.ns || !config.source)
                abort();
        if (!config.exec)
                return 0;
        free(config.ca_file); /* no files are read here */
        config.ca_file = NULL;
        if (exec_info(&config, &info, &err) < 0)
                abort();
        return 0;
}
