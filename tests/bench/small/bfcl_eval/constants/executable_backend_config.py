MULTI_TURN_FUNC_DOC_FILE_MAPPING = {"LampAPI": "lamp_api.json"}
CLASS_FILE_PATH_MAPPING = {"LampAPI": "bfcl_eval.eval_checker.lamps"}
